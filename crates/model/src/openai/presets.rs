//! Well-known servers that speak `OpenAI`'s chat completions.

use super::StructuredOutput;
use crate::BaseUrl;

/// What is known about a server before it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The provider's name in `provider:model`.
    pub name: &'static str,
    /// Where it is, unless the user says otherwise.
    pub base_url: &'static str,
    /// The environment variable that holds its key by custom; `None` for servers that need none.
    pub key_env: Option<&'static str>,
    /// The differences that matter.
    pub dialect: Dialect,
}

/// In what a server differs from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The strongest way to demand JSON that it knows.
    pub structured: StructuredOutput,
    /// Whether the token limit is called `max_completion_tokens`.
    pub max_completion_tokens: bool,
    /// Whether an answer under a schema can be streamed.
    pub streams_schema: bool,
    /// How reasoning is switched.
    pub think: ThinkStyle,
    /// Whether it drafts from a `prediction`.
    pub prediction: bool,
}

/// How a server is told how much to reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkStyle {
    /// `reasoning_effort`.
    Effort,
    /// `chat_template_kwargs.enable_thinking`, for servers that render the template themselves.
    Template,
    /// Not at all.
    None,
}

/// What is expected of a server that nobody knows.
pub const PLAIN: Dialect = Dialect {
    structured: StructuredOutput::JsonSchema,
    max_completion_tokens: false,
    streams_schema: true,
    think: ThinkStyle::Effort,
    prediction: false,
};

/// The servers, by name. What a server rejects in spite of this table is learned from its answers.
pub const PRESETS: [Preset; 11] = [
    Preset {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        key_env: Some("OPENAI_API_KEY"),
        dialect: Dialect {
            max_completion_tokens: true,
            prediction: true,
            ..PLAIN
        },
    },
    Preset {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        key_env: Some("OPENROUTER_API_KEY"),
        dialect: PLAIN,
    },
    Preset {
        name: "groq",
        base_url: "https://api.groq.com/openai/v1",
        key_env: Some("GROQ_API_KEY"),
        // Its documentation: no streaming with structured outputs.
        dialect: Dialect {
            streams_schema: false,
            ..PLAIN
        },
    },
    Preset {
        name: "mistral",
        base_url: "https://api.mistral.ai/v1",
        key_env: Some("MISTRAL_API_KEY"),
        dialect: Dialect {
            prediction: true,
            ..PLAIN
        },
    },
    Preset {
        name: "deepseek",
        base_url: "https://api.deepseek.com/v1",
        key_env: Some("DEEPSEEK_API_KEY"),
        // It rejects `json_schema`.
        dialect: Dialect {
            structured: StructuredOutput::JsonObject,
            think: ThinkStyle::None,
            ..PLAIN
        },
    },
    Preset {
        name: "together",
        base_url: "https://api.together.xyz/v1",
        key_env: Some("TOGETHER_API_KEY"),
        dialect: PLAIN,
    },
    Preset {
        name: "gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        key_env: Some("GEMINI_API_KEY"),
        dialect: PLAIN,
    },
    Preset {
        name: "anthropic",
        base_url: "https://api.anthropic.com/v1",
        key_env: Some("ANTHROPIC_API_KEY"),
        // Its documentation: `response_format` and `reasoning_effort` are ignored.
        dialect: Dialect {
            structured: StructuredOutput::Prompt,
            think: ThinkStyle::None,
            ..PLAIN
        },
    },
    Preset {
        name: "lmstudio",
        base_url: "http://127.0.0.1:1234/v1",
        key_env: None,
        dialect: PLAIN,
    },
    Preset {
        name: "llamacpp",
        base_url: "http://127.0.0.1:8080/v1",
        key_env: None,
        dialect: Dialect {
            think: ThinkStyle::Template,
            ..PLAIN
        },
    },
    Preset {
        name: "vllm",
        base_url: "http://127.0.0.1:8000/v1",
        key_env: None,
        dialect: Dialect {
            think: ThinkStyle::Template,
            ..PLAIN
        },
    },
];

/// The preset of a name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Dialect {
    /// The dialect of a server: by its address where that is well known, else by the provider's name if
    /// it is one of the servers that run anywhere.
    pub fn of(provider: &str, base_url: &BaseUrl) -> Self {
        let host = base_url.url().host_str();
        let by_host = PRESETS
            .iter()
            .filter(|preset| preset.key_env.is_some())
            .find(|preset| {
                let there = preset.base_url.split('/').nth(2);
                there.is_some() && there == host
            });
        by_host
            .or_else(|| preset(provider).filter(|preset| preset.key_env.is_none()))
            .map_or(PLAIN, |preset| preset.dialect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialect_goes_by_address_first() {
        let of = |name, url| Dialect::of(name, &BaseUrl::openai(url).unwrap());
        assert!(of("work", "https://api.openai.com/v1").max_completion_tokens);
        assert!(!of("openai", "http://localhost:8080").max_completion_tokens);
        assert_eq!(
            of("llamacpp", "http://gpu:9000").think,
            ThinkStyle::Template
        );
        assert_eq!(of("work", "https://x.org"), PLAIN);
    }

    #[test]
    fn base_urls_are_in_their_normal_form() {
        for preset in PRESETS {
            let url = BaseUrl::openai(preset.base_url).unwrap();
            assert_eq!(url.to_string(), preset.base_url);
            assert_eq!(super::preset(preset.name), Some(&preset));
        }
        assert!(preset("nobody").is_none());
    }
}

//! Well-known servers with the chat completions API.

use super::StructuredOutput;
use crate::BaseUrl;

/// What is known about a server in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The provider's name in `provider:model`.
    pub name: &'static str,
    /// The default base URL.
    pub base_url: &'static str,
    /// The environment variable that usually holds its key; `None` for servers without keys.
    pub key_env: Option<&'static str>,
    /// How its API differs.
    pub dialect: Dialect,
}

/// How a server's API differs from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The strongest way to request JSON that it supports.
    pub structured: StructuredOutput,
    /// Whether the token limit is named `max_completion_tokens`.
    pub max_completion_tokens: bool,
    /// Whether it can stream a reply with a schema.
    pub streams_schema: bool,
    /// How to control reasoning.
    pub think: ThinkStyle,
    /// Whether it supports `prediction`.
    pub prediction: bool,
}

/// How to tell a server how much to reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkStyle {
    /// `reasoning_effort`.
    Effort,
    /// `chat_template_kwargs.enable_thinking`, for servers that render the chat template themselves.
    Template,
    /// Not supported.
    None,
}

/// The assumptions about an unknown server.
pub const PLAIN: Dialect = Dialect {
    structured: StructuredOutput::JsonSchema,
    max_completion_tokens: false,
    streams_schema: true,
    think: ThinkStyle::Effort,
    prediction: false,
};

/// The presets. What a server rejects despite this table is learned from its responses.
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

/// The preset with this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Dialect {
    /// The dialect of a server: by its address if it is well known, otherwise by the provider's name for servers that
    /// run anywhere.
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
    fn the_address_determines_the_dialect_first() {
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
    fn preset_base_urls_are_normalized() {
        for preset in PRESETS {
            let url = BaseUrl::openai(preset.base_url).unwrap();
            assert_eq!(url.to_string(), preset.base_url);
            assert_eq!(super::preset(preset.name), Some(&preset));
        }
        assert!(preset("nobody").is_none());
    }
}

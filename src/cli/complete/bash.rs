use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap_complete::env::{self, EnvCompleter};

/// The registration script. Bash splits words at `:` and `=`, but model names contain colons. The script
/// therefore joins the words as they appear on the line, and strips from each candidate the part that bash
/// already has. It works with bash 3.2, the version that macOS ships.
const SCRIPT: &str = r#"_reflect_complete() {
    local rest="${COMP_LINE:0:COMP_POINT}" before part last i words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        before="${rest%%[![:space:]]*}"
        rest="${rest:${#before}}"
        part="${COMP_WORDS[i]}"
        if ((i == COMP_CWORD)); then
            part="$rest"
        fi
        rest="${rest:${#part}}"
        if ((i > 0)) && [[ -z "$before" ]]; then
            words[${#words[@]}-1]+="$part"
        else
            words+=("$part")
        fi
    done
    last="${words[${#words[@]}-1]}"
    local IFS=$'\013'
    COMPREPLY=( $( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$((${#words[@]} - 1))" \
        VARIABLE="bash" \
        "COMMAND" -- "${words[@]}" 2> /dev/null \
    ) )
    if [[ $? != 0 ]]; then
        COMPREPLY=()
    else
        COMPREPLY=("${COMPREPLY[@]#"${last%"$2"}"}")
        if [[ "${#COMPREPLY[@]}" == 1 && "${COMPREPLY[0]}" =~ [=/:]$ ]]; then
            compopt -o nospace 2> /dev/null
        fi
    fi
}
complete -o bashdefault -F _reflect_complete BIN"#;

/// The completer for bash.
pub(super) struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        env::Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        env::Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        _: &str,
        bin: &str,
        command: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let script = SCRIPT
            .replace("BIN", bin)
            .replace("COMMAND", command)
            .replace("VARIABLE", variable);
        writeln!(out, "{script}")
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        args: Vec<OsString>,
        here: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        env::Bash.write_complete(command, args, here, out)
    }
}

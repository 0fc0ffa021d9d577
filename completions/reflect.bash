_reflect_complete() {
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
        _REFLECT_COMPLETE="bash" \
        "reflect" -- "${words[@]}" 2> /dev/null \
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
complete -o bashdefault -F _reflect_complete reflect

# Completion of onnxbuild in bash. A line of ~/.bashrc: eval "$(onnxbuild completion bash)"
_onnxbuild() {
    local line=${COMP_LINE:0:COMP_POINT} candidate skip="" breaks
    local word=${line##*[[:space:]]}
    # Bash takes what follows a `:` or `=` for a word of its own: what stands before it is not replaced.
    breaks=${COMP_WORDBREAKS//[^:=]/}
    if [[ -n $breaks && $word == *[$breaks]* ]]; then
        skip=${word%"${word##*[$breaks]}"}
    fi
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        printf -v candidate '%q' "${candidate#"$skip"}"
        COMPREPLY+=("$candidate")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" completion --candidates "$line" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/:=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _onnxbuild onnxbuild

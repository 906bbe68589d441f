#compdef onnxbuild
# Completion of onnxbuild in zsh. A line of ~/.zshrc, after compinit: eval "$(onnxbuild completion zsh)"
_onnxbuild() {
    local line value shown
    local -a whole begun whole_shown begun_shown
    line="${(j: :)words[1,CURRENT-1]} $PREFIX"
    while IFS=$'\t' read -r value shown; do
        shown="$value${shown:+  -- $shown}"
        if [[ $value == *[/:=] ]]; then
            begun+=("$value") begun_shown+=("$shown")
        else
            whole+=("$value") whole_shown+=("$shown")
        fi
    done < <(${(Q)words[1]/#\~/$HOME} completion --candidates "$line" 2>/dev/null)
    (( $#begun )) && compadd -l -S '' -d begun_shown -a begun
    (( $#whole )) && compadd -l -d whole_shown -a whole
    (( $#begun + $#whole ))
}
if [[ ${funcstack[1]} == _onnxbuild ]]; then
    _onnxbuild "$@"
else
    compdef _onnxbuild onnxbuild
fi

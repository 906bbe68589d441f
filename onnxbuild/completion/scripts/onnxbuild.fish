# Completion of onnxbuild in fish. A line of ~/.config/fish/config.fish: onnxbuild completion fish | source
function __onnxbuild_candidates
    set -l typed (commandline -cp)
    set -l program (commandline -opc)[1]
    eval (string escape -- $program) completion --candidates (string escape -- "$typed") 2>/dev/null
end
complete -c onnxbuild -f -k -a '(__onnxbuild_candidates)'

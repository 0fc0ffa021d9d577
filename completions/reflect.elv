set edit:completion:arg-completer[reflect] = { |@words|
    var index = (count $words)
    set index = (- $index 1)

    put (env _CLAP_IFS="\n" _CLAP_COMPLETE_INDEX=(to-string $index) _REFLECT_COMPLETE="elvish" reflect -- $@words) | to-lines
}

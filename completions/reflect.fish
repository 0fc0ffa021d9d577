complete --keep-order --exclusive --command reflect --arguments "(_REFLECT_COMPLETE=fish reflect -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"

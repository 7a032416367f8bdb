bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = contrib/completions/bash/allocwatch contrib/completions/bash/allocwatchd
zshfunctiondir = $(datadir)/zsh/site-functions
dist_zshfunction_DATA = contrib/completions/zsh/_allocwatch contrib/completions/zsh/_allocwatchd

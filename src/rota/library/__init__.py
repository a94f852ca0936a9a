"""What `rota` exports: thin functions over the parts of the package, for scripts and notebooks."""

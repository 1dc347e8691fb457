"""Our parser in other servers: a tool parser of vLLM and a detector of SGLang for each format."""

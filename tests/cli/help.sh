plumb --help

"""`python -m torch_fl_cli` is `torch-fl`."""

from torch_fl_cli.main import main

main()

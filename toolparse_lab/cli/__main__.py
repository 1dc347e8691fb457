"""`python -m toolparse_lab.cli`."""

import sys

from .app import main

sys.exit(main())

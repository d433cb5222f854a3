"""`python -m codezero`."""

import sys

from codezero.cli import main

sys.exit(main())

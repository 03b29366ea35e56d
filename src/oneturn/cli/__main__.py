"""`python -m oneturn.cli`."""

import sys

from oneturn.cli import main

sys.exit(main())

"""`python -m demo`."""

import sys

from demo.flights import main

sys.exit(main())

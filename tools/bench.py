# SPDX-License-Identifier: MIT
"""./hak bench: hakbench, without a variable that the measured programs would inherit."""
import sys

from hakbench.__main__ import main

sys.exit(main())

# SPDX-License-Identifier: MIT
"""./hak bench: hakbench, without a variable that the measured programs would inherit."""
import sys

try:
    from hakbench.__main__ import main
    sys.exit(main())
except KeyboardInterrupt:
    print("./hak bench: interrupted", file=sys.stderr)
    sys.exit(130)

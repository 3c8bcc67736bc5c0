# SPDX-License-Identifier: MIT
# python3 computes the same on hakmem, with its own pools and with every object from malloc. If this
# fails, nobody can preload hakmem under a Python service with threads and worker processes.
. "$(dirname "$0")/lib.sh"
needs python3
# Where python3 is a shim, the program behind it.
python=$(python3 -c 'import sys; print(sys.executable)')

well json "$python" "$tests/python_workload.py"
PYTHONMALLOC=malloc
export PYTHONMALLOC
well every_object "$python" "$tests/python_workload.py"

check "the option sent the small objects to hakmem" \
    [ "$(counter every_object refills)" -gt "$(counter json refills)" ]

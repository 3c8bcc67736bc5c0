# SPDX-License-Identifier: MIT
"""hakbench: compares allocators on the same programs, and says how sure it is.

    arguments    the command line, refused in one line where it is wrong
    plan         which programs run, with which arguments (cases.txt)
    command      a program of the user's: looked at, tried out, told of if it cannot be compared
    programs     what a program's file says before it runs
    suite        the public suite mimalloc-bench, from a copy of it
    peers        which allocators, their libraries and versions
    recipes      how the foreign ones are fetched and built
    launcher     one run of one program: its output and what it cost
    verify       the proof that the named allocator served the program
    counters     hakmem's own statistics
    counts       memory system calls and instructions, in runs of their own
    run          the interleaved runs of a session, one JSON line each
    stats        medians, intervals, paired ratios, noise floor
    environment  the machine and the build, without names of hosts or users
    results      what a session's runs say
    units        numbers with units for people
    tables       tables for the terminal and for Markdown
    plots, page  the report: curves for Plotly, and the page (templates/) that holds them
"""

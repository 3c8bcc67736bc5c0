# SPDX-License-Identifier: MIT
"""hakbench: compares allocators on the same programs, and says how sure it is.

    plan         which programs run, with which arguments (cases.txt)
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
    tables       tables for the terminal and for Markdown
    svg, page    the report: charts, and the page that holds them
"""

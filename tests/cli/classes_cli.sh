# SPDX-License-Identifier: MIT
# `hakmem classes`: what other size classes would save, from files whose sizes are known. If this
# fails, somebody changes size classes for a saving that is not there.
# tests/preload/classes_preload.py asks a running process.
. "$(dirname "$0")/lib.sh"
needs python3

refused none 2 "usage: hakmem classes" classes
refused option 2 "classes: there is no option '--all'" classes --all x
refused two 2 "classes: one process or file at a time" classes a b
refused zero 2 "classes: --count takes 1 to 126" classes --count 0 x
refused many 2 "classes: --count takes 1 to 126" classes --count 127 x
refused absent 1 "classes: $work/none is not there" classes "$work/none"
refused pid 1 "classes: " classes 0
cp /bin/true "$work/alpha"
HAKMEM_PROFILE=$work/bare LD_PRELOAD=$PRELOAD_LIB "$work/alpha" >/dev/null 2>&1
refused bare 1 "has no sizes of alpha: they are sampled with learn=sites" classes "$work/bare"

check "tables of known optimum" python3 - "$hakmem" "$work/bare" "$work/sized" <<'PYTHON'
import itertools, json, pathlib, random, subprocess, sys, zlib

hakmem, bare, sized = sys.argv[1:]
KIB = 1024
LARGEST = 128 * KIB

def share(block):
    """What a block takes in a slab: of 1, 2, 4 or 8 times 64 KiB, rounded up."""
    for granules in (1, 2, 4, 8):
        slab = granules * 64 * KIB
        if 2 * block <= slab and slab % block * 32 <= slab:
            break
    return -(-slab // min(slab // block, 8192))

def write(sizes, watched_ms=1):
    """A file of one program that holds so many blocks of each size, with their slack."""
    text = pathlib.Path(bare).read_text()
    text = text[:text.rindex("crc32 ")] + f"sizes {watched_ms} 1000\n"
    text += "".join(f"size {need} {blocks} {slack}\n"
                    for need, (blocks, slack) in sorted(sizes.items()))
    pathlib.Path(sized).write_text(text + f"crc32 {zlib.crc32(text.encode()):08x}\n")
    pathlib.Path(sized).chmod(0o600)

def ask(count):
    """What the command says."""
    return json.loads(subprocess.run([hakmem, "classes", "--json", "--count", str(count), sized],
                                     check=True, capture_output=True, text=True).stdout)

def waste(table, sizes):
    """What a table wastes."""
    return sum(blocks * (share(min(c for c in table if c >= need)) - need) + slack
               for need, (blocks, slack) in sizes.items())

# One size between two classes: all that today's class adds is saved.
write({528: (1000, 3000)})
said = ask(72)
assert said["today"]["by_class"] == [
    {"block_bytes": 576, "live_blocks": 1000, "requested_bytes": 525000,
     "waste_bytes": 1000 * (share(576) - 525)}], said
assert said["best"] == {"classes": [528, LARGEST], "waste_bytes": 1000 * (share(528) - 525),
                        "saved_bytes": 1000 * (share(576) - share(528))}, said
assert ask(1)["best"]["saved_bytes"] == 1000 * (share(576) - LARGEST)

# A size whose blocks leave a tail that is larger than what the next class adds.
write({21424: (10, 0), 21824: (10, 0)})
best = ask(3)["best"]
assert best["waste_bytes"] == min(waste(t, {21424: (10, 0), 21824: (10, 0)})
                                  for t in ([21424, 21824, LARGEST], [21824, LARGEST])), best

# The mean over the time that was watched.
write({528: (1000, 3000)}, watched_ms=10)
assert ask(72)["best"]["saved_bytes"] == 100 * (share(576) - share(528))

# Against all tables of so many classes.
random.seed(20)
needs = [8, 16, 48, 112, 144, 272, 528, 608, 1040, 1984, 2080, 4672, 21824, 42864]
for trial in range(12):
    sizes = {need: (random.randrange(1, 5000), random.randrange(8))
             for need in random.sample(needs, 8)}
    write(sizes)
    for count in (1, 2, 3, 5, 9):
        best = ask(count)["best"]
        least = min(waste((*table, LARGEST), sizes)
                    for table in itertools.combinations(sizes, min(count, 9) - 1))
        assert best["waste_bytes"] == least, (trial, count, best, least)
        assert best["waste_bytes"] == waste(best["classes"], sizes), best
        assert len(best["classes"]) <= count, best
write({528: (1000, 3000), 131072: (1, 0)})
PYTHON

asked text 0 classes "$work/sized"
shows text '^alpha: on average .* live in blocks of size classes \(1000 samples\), of which'
shows text '^ +CLASS +LIVE BLOCKS +REQUESTED +WASTE +SHARE$'
shows text '^ +576 +1000\.0 +525000 +5[0-9]* +[0-9.]+ %$'
shows text '^ +72 +[0-9]+ +[0-9]+  as many as today$'
shows text '^the best table of at most 72 classes saves [0-9]+ bytes'
shows text '^  528 131072$'
asked lint 0 learned lint "$work/sized"
refused program 1 "has no program beta" classes --program beta "$work/sized"

# Of several programs the one that has sizes is meant, or the one that is named.
cp "$work/sized" "$work/both"
cp /bin/true "$work/beta"
HAKMEM_PROFILE=$work/both LD_PRELOAD=$PRELOAD_LIB "$work/beta" >/dev/null 2>&1
asked only 0 classes "$work/both"
shows only '^alpha: on average '
refused bare_beta 1 "has no sizes of beta" classes --program beta "$work/both"
sed 's/^program alpha/program gamma/; /^crc32/d' "$work/sized" >"$work/other"
python3 -c 'import pathlib, sys, zlib
text = pathlib.Path(sys.argv[1]).read_text()
pathlib.Path(sys.argv[1]).write_text(text + f"crc32 {zlib.crc32(text.encode()):08x}\n")' \
    "$work/other"
asked merged 0 learned merge "$work/both" "$work/other"
chmod 600 "$work/merged.out"
refused several 1 "has several programs, name one with --program: " classes "$work/merged.out"
check "they are named: $(cat "$work/several.err")" \
    grep -qE 'program: (alpha, gamma|gamma, alpha)$' "$work/several.err"
asked named 0 classes --program gamma "$work/merged.out"
shows named '^gamma: on average '

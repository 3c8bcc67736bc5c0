# SPDX-License-Identifier: MIT
# The examples for services: what they name is there, and their readers read them. If this fails,
# a dashboard stays empty, or a unit does not start.
. "$(dirname "$0")/lib.sh"
needs python3
installed
examples=$prefix/share/doc/hakmem/examples
check "they are installed" [ -s "$examples/grafana.json" ]

# Every number that the dashboard asks for is served.
name=ls
HAKMEM_STATS=openmetrics LD_PRELOAD=$PRELOAD_LIB ls / >/dev/null 2>"$work/metrics"
dashboard=$examples/grafana.json
check "the dashboard asks for what there is" python3 - "$dashboard" "$work/metrics" <<'END'
import json, pathlib, re, sys
board = json.loads(pathlib.Path(sys.argv[1]).read_text())
served = set(re.findall(r"^(hakmem_\w+)", pathlib.Path(sys.argv[2]).read_text(), re.M))
asked = {name for panel in board["panels"] for target in panel["targets"]
         for name in re.findall(r"hakmem_\w+", target["expr"])}
asked |= {name for variable in board["templating"]["list"]
          for name in re.findall(r"hakmem_\w+", variable["query"])}
assert len(asked) > 20 and asked <= served, asked - served
places = set()
for panel in board["panels"]:
    at = panel["gridPos"]
    cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
             for y in range(at["y"], at["y"] + at["h"])}
    assert not cells & places and at["x"] + at["w"] <= 24, panel["title"]
    places |= cells
assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
END

# Settings that they make are settings.
cat "$examples"/* | grep -o 'HAKMEM_[A-Z_]*=[a-zA-Z0-9]*' | sort -u >"$work/settings"
sed -n '/name: HAKMEM_/{N;s/.*name: \(.*\)\n.*value: "*\([a-z0-9]*\)"*/\1=\2/p;}' \
    "$examples/kubernetes.yaml" >>"$work/settings"
check "there are some" [ "$(wc -l <"$work/settings")" -ge 4 ]
while read -r setting; do
    check "$setting is one" "$prefix/bin/hakmem" run -o "$setting" true
done <"$work/settings"

# The command that they start is one, up to its port, which may be in use.
check "what they start is right" sh -c 'grep -h "hakmem.*top.*--serve" "$1"/* | grep -q -- --all' \
    sh "$examples"
if command -v ruby >/dev/null; then
    for file in kubernetes.yaml prometheus.yml; do
        check "$file is YAML" ruby -ryaml -e 'YAML.load_file(ARGV[0]).fetch(ARGV[1])' \
            "$examples/$file" "$([ $file = prometheus.yml ] && echo scrape_configs || echo spec)"
    done
fi
if command -v systemd-analyze >/dev/null; then
    sed "s,/usr/bin/hakmem,$prefix/bin/hakmem," "$examples/hakmem-exporter.service" \
        >"$work/hakmem-exporter.service"
    mkdir "$work/some.service.d"
    printf '[Service]\nExecStart=/bin/true\n' >"$work/some.service"
    cp "$examples/hakmem.conf" "$work/some.service.d/hakmem.conf"
    for unit in hakmem-exporter some; do
        systemd-analyze verify --man=no "$work/$unit.service" >"$work/verified" 2>&1 || :
        check "$unit: $(grep "$unit\|hakmem.conf" "$work/verified")" \
            [ -z "$(grep "$unit\|hakmem.conf" "$work/verified")" ]
    done
fi

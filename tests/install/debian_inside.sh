# SPDX-License-Identifier: MIT
# debian_inside.sh FOLDER: in a root that it may change, installs the packages from FOLDER, uses
# them and purges them. Run by debian_install.sh.
debs=$1
PRELOAD_LIB=libhakmem.so.0
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/root.sh"
packages='libhakmem0 libhakmem-dev hakmem-tools'
export DEBIAN_FRONTEND=noninteractive
# Of the caller's, and perhaps not here.
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER

everything >"$work/before"
# The examples for services: with the packages that the Dockerfile names, what they preload serves
# and the command that they start is there.
examples=/usr/share/doc/hakmem-tools/examples
source=$tests/../../packaging/service
named=$(grep -v '^#' "$source/Dockerfile" | grep -o '[a-z0-9-]*_\*\.deb' | sort -u | sed 's/_.*//')
for package in $(echo "$named" | sort -r); do
    quietly dpkg -i "$debs/$package"_*.deb
done
grep -ho 'LD_PRELOAD=[^ ]*' "$examples"/* >"$work/preloads"
sed -n '/name: LD_PRELOAD/{n;s/.*value: *//p;}' "$examples/kubernetes.yaml" | grep -v '""' |
    sed 's/^/LD_PRELOAD=/' >>"$work/preloads"
equal "three examples preload" "$(wc -l <"$work/preloads")" 3
large_blocks=0
while read -r preload; do
    serves example env "$preload" sh -c 'ls -l / | sort >/dev/null'
done <"$work/preloads"
sidecar=$(sed -n 's/.*command: \["\([a-z]*\)".*/\1/p' "$examples/kubernetes.yaml")
check "the sidecar's command is there" [ -x "/usr/bin/$sidecar" ]
check "and it is one" [ -n "$sidecar" ]
quietly dpkg -i "$debs"/libhakmem-dev_*.deb
equal "all is as it was packed" "$(dpkg -V $packages 2>&1 | grep -v ' /usr/share/\(doc\|man\)/')" ""
check "the loader's cache has it" sh -c 'ldconfig -p | grep -q "libhakmem.so.0 "'
check "nothing of it is in /etc" sh -c "! dpkg -L $packages | grep '^/etc'"

# A new process of anybody's.
quiet_list='ls -l / | sort >/dev/null'
serves preloaded env LD_PRELOAD=libhakmem.so.0 sh -c "$quiet_list"
serves run hakmem run sh -c "$quiet_list"
check "doctor looks at the machine" hakmem doctor >"$work/said"
LD_PRELOAD=libhakmem.so.0 sleep 100 &
server=$!
has_library() { hakmem doctor "$server" | grep -q 'hakmem serves malloc'; }
becomes "doctor finds the library in a process" has_library
check "there is a sample of settings" grep -q '^#decay = ' /usr/share/doc/hakmem-tools/hakmem.conf

# Building programs does without the command.
quietly dpkg --purge hakmem-tools
large_blocks=10
for language in c cpp; do
    case $language in
    c) compiler=cc ;;
    cpp) compiler=c++ ;;
    esac
    for kind in hakmem hakmem-static hakmem-object; do
        silently "$compiler" $(pkg-config --cflags $kind) "$consumer/use.$language" \
            -o "$work/$language-$kind" $(pkg-config --libs $kind) -pthread
        serves "$language-$kind" "$work/$language-$kind"
    done
done
quietly cmake -S "$consumer" -B "$work/build"
quietly cmake --build "$work/build"
for program in c_object c_static c_shared cpp_object cpp_static cpp_shared; do
    serves "$program" "$work/build/$program"
done

quietly dpkg --purge libhakmem-dev libhakmem0
everything >"$work/after"
equal "nothing stays" "$(differs "$work/before" "$work/after")" ""
check "the loader's cache has it no more" sh -c '! ldconfig -p | grep -q libhakmem'

# SPDX-License-Identifier: MIT
# gcc on hakmem makes of hakmem's own sources the objects that it makes without. If this fails,
# builds under hakmem are not to be trusted, and its big short-lived heaps are served wrongly.
. "$(dirname "$0")/lib.sh"
needs gcc

root=$tests/../..
flags="-std=gnu11 -O2 -g1 -fPIC -fvisibility=hidden -ftls-model=initial-exec
       -I$root/src -I$root/include
       -ffile-prefix-map=$work/plain=. -ffile-prefix-map=$work/preloaded=.
       -DHAK_CHECK_LEVEL=0 -DHAK_TINY=0 -DHAK_SMALL_WINDOW=0 -DHAK_INTERPOSE=1"
for source in api/malloc api/malloc_slow heap/heap span/span_heap conf/conf; do
    object=$(basename $source).o
    # shellcheck disable=SC2086 # the flags are words
    well "$(basename $source)" gcc $flags -c "$root/src/$source.c" -o "$object"
    check "$object is the same" cmp "$work/plain/$object" "$work/preloaded/$object"
done

# Templates make the compiler allocate most.
if command -v g++ >/dev/null; then
    well cpp g++ -std=c++17 -O1 -c "$tests/cpp.cpp" -o cpp.o
    check "cpp.o is the same" cmp "$work/plain/cpp.o" "$work/preloaded/cpp.o"
    cat >"$work/templates.cpp" <<'END'
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

template <int N, class... T> struct Build : Build<N - 1, T..., std::integral_constant<int, N>> {};
template <class... T> struct Build<0, T...> {
    using type = std::tuple<T...>;
};
template <std::size_t... I> auto table(std::index_sequence<I...>)
{
    return std::map<int, std::string>{{int(I), std::string(I % 40, 'x')}...};
}

int main()
{
    std::variant<int, std::string, std::map<int, int>> choice = "three";
    std::visit([](auto &value) { std::cout << sizeof value << '\n'; }, choice);
    std::cout << std::regex_replace("abcbd", std::regex("a(b|c)*"), "$1") << '\n'
              << std::tuple_size<Build<300>::type>::value << '\n'
              << table(std::make_index_sequence<300>()).size() << '\n';
}
END
    well templates g++ -std=c++17 -O2 "$work/templates.cpp" -o templates
    check "the programs are the same" cmp "$work/plain/templates" "$work/preloaded/templates"
    well program "$work/preloaded/templates"
    equal "the program's tuple is built" "$(sed -n 3p "$work/program.out")" 300
fi

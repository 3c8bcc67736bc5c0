# SPDX-License-Identifier: MIT
# make -j runs compilers beside each other, each with hakmem. If this fails, builds under hakmem do.
. "$(dirname "$0")/lib.sh"
needs make gcc

cat >"$work/Makefile" <<'END'
parts := $(shell seq 24)
objects := $(parts:%=part%.o)
all: whole
	./whole && echo 300
part%.c:
	printf 'int part%s(void) { return %s; }\n' $* $* >$@
main.c: Makefile
	{ for n in $(parts); do echo "int part$$n(void);"; done; \
	  echo 'int main(void) { return 300 != 0'; \
	  for n in $(parts); do echo "+ part$$n()"; done; \
	  echo '; }'; } >$@
%.o: %.c
	gcc -O2 -c $< -o $@
whole: main.o $(objects)
	gcc -o $@ main.o $(objects)
.SECONDARY:
END
cp "$work/Makefile" "$work/plain/"
cp "$work/Makefile" "$work/preloaded/"
well make make -s -j4
equal "what was built runs" "$(cat "$work/make.out")" 300
check "make, compilers and linkers came to hakmem" [ "$(reports make)" -ge 75 ]
check "the program is the same" cmp "$work/plain/whole" "$work/preloaded/whole"

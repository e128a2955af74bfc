// SPDX-License-Identifier: Apache-2.0
/* Which programs make an item of the build spec. etrace/export/build_spec.py has the same names. */
#include "known.h"

#include "path.h"

const char known_default[] =
	"ar,cc,ld,gcc,llvm-gcc,clang,c++,g++,llvm-g++,clang++,arm-none-eabi-gcc,arm-none-eabi-g++,"
	"cl,clang-cl,link,lld-link,lib,llvm-lib,ml,ml64,"
	"iccarm,iasmarm,ilinkarm,iarchive,"
	"armcc,armclang,armasm,armlink,armar,"
	"x86_64-w64-mingw32-gcc,x86_64-w64-mingw32-g++,i686-w64-mingw32-gcc,i686-w64-mingw32-g++";

void known_split(struct words *names, struct text list)
{
	size_t start = 0;

	for (size_t at = 0; at <= list.len; at++) {
		if (at < list.len && list.data[at] != ',')
			continue;
		if (at > start)
			words_add(names, (struct text){ list.data + start, at - start });
		start = at + 1;
	}
}

bool known_has(const struct words *names, struct text program)
{
	struct text name = path_program(program);
	size_t n = words_count(names);

	for (size_t i = 0; i < n; i++) {
		if (text_matches(name, path_program(words_at(names, i))))
			return true;
	}
	return false;
}

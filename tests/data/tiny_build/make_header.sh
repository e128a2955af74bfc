#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# words -> a header with one line a word
i=0
while read -r word; do
	echo "#define WORD_$i \"$word\""
	i=$((i + 1))
done
echo "#define N_WORDS $i"

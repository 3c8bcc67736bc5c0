# SPDX-License-Identifier: MIT
# PHP's modules are opened with RTLD_DEEPBIND: they must use hakmem as the rest does. If this fails,
# php ends with "free(): invalid pointer" before its first line, as with each preloaded malloc.
. "$(dirname "$0")/lib.sh"
needs php

cat >"$work/words.php" <<'END'
<?php
$lists = [];
for ($i = 0; $i < 100000; $i++)
    $lists["k" . ($i % 5000)][] = str_repeat("x", $i % 200);
ksort($lists);
echo count(get_loaded_extensions()) > 0 ? array_sum(array_map('count', $lists)) : "none", "\n";
END
well php php "$work/words.php"
equal "all words are there" "$(tail -n 1 "$work/php.out")" 100000
USE_ZEND_ALLOC=0
export USE_ZEND_ALLOC
well php_malloc php "$work/words.php"
equal "all words are there with PHP's allocator off" "$(tail -n 1 "$work/php_malloc.out")" 100000

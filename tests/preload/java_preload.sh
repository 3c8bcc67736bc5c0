# SPDX-License-Identifier: MIT
# java compiles and runs a program with threads, direct buffers and zlib. The collector's heap is
# its own; the compiler's arenas, class data and buffers come from malloc. If this fails, hakmem
# must not be preloaded where java runs.
. "$(dirname "$0")/lib.sh"
command -v javac >/dev/null || skip "no javac: the JDK's 277 MB are installed by ./hak test --full"
needs java

same version java -version
equal "java tells its version" "$(cat "$work/version.status")" 0

if full; then keys=100000; else keys=20000; fi
cat >"$work/Main.java" <<END
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

public class Main {
    static long work(int seed) throws Exception {
        Map<Integer, String> table = new HashMap<>();
        for (int key = 0; key < $keys; key++)
            table.put(key * 31 + seed, "value " + key);
        ByteBuffer direct = ByteBuffer.allocateDirect(100000 + seed);
        for (int i = 0; i < direct.capacity(); i++)
            direct.put(i, (byte) (i * seed));
        byte[] bytes = new byte[direct.capacity()];
        direct.get(0, bytes);
        Deflater deflater = new Deflater();
        deflater.setInput(bytes);
        deflater.finish();
        byte[] packed = new byte[200000];
        int length = deflater.deflate(packed);
        deflater.end();
        Inflater inflater = new Inflater();
        inflater.setInput(packed, 0, length);
        byte[] unpacked = new byte[bytes.length];
        int count = inflater.inflate(unpacked);
        inflater.end();
        long sum = table.values().stream().mapToLong(String::length).sum();
        return sum + count + (Arrays.equals(bytes, unpacked) ? 1000000000L : 0);
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(6);
        List<Future<Long>> results = new ArrayList<>();
        for (int seed = 0; seed < 24; seed++) {
            final int number = seed;
            results.add(pool.submit(() -> work(number)));
        }
        for (Future<Long> result : results)
            System.out.println(result.get());
        pool.shutdown();
    }
}
END
well java java -Xmx512m "$work/Main.java"
check "its threads came to hakmem" [ "$(counter java threads_started)" -gt 6 ]
equal "all results are there" "$(wc -l <"$work/java.out")" 24

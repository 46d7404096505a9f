// Which instruction sets (levels) this processor supports.
#pragma once

namespace dropdtw {

#if defined(__x86_64__)
// What cpuid and xgetbv say. Compilers know this too, but on Windows their answer is in a library that is not linked.
struct Processor {
  bool v3 = false, v4 = false;

  Processor() {
    unsigned a, b, c, d, basic, saved, unused;
    asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "0"(0), "2"(0));
    if (a < 7) return;
    asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(basic), "=d"(d) : "0"(1), "2"(0));
    asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "0"(7), "2"(0));
    const unsigned fma = 1u << 12, xsave = 1u << 27, avx = 1u << 28, avx2 = 1u << 5, bmi2 = 1u << 8;
    if (!all(basic, fma | xsave | avx)) return;
    asm volatile("xgetbv" : "=a"(saved), "=d"(unused) : "c"(0));
    v3 = all(b, avx2 | bmi2) && all(saved, 0x6);  // the system saves these registers
    const unsigned f = 1u << 16, dq = 1u << 17, cd = 1u << 28, bw = 1u << 30, vl = 1u << 31;
    v4 = v3 && all(b, f | dq | cd | bw | vl) && all(saved, 0xe6);
  }
  static bool all(unsigned flags, unsigned wanted) { return (flags & wanted) == wanted; }
};
#endif

#if defined(__x86_64__) && defined(_MSC_VER)
inline bool runs_v3() { return Processor().v3; }
inline bool runs_v4() { return Processor().v4; }
#elif defined(__x86_64__)
inline bool runs_v3() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
inline bool runs_v4() {
  return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
inline bool runs_v3() { return false; }
inline bool runs_v4() { return false; }
#endif

}  // namespace dropdtw

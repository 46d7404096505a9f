// Which instruction sets (levels) this processor supports.
#pragma once

namespace dropdtw {

#if defined(__x86_64__)
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

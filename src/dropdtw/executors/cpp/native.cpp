// Prints the best level of this machine's processor. The build runs it to choose what to compile.
#include <cstdio>

#include "level.hpp"

int main() {
  std::puts(dropdtw::runs_v4() ? "v4" : dropdtw::runs_v3() ? "v3" : "baseline");
  return 0;
}

// Adds the functions for pairs to the Python module.
#pragma once
#include <nanobind/nanobind.h>

namespace dropdtw {

void define_pairs(nanobind::module_& module);

}  // namespace dropdtw

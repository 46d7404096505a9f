// Adds the functions for speech to the Python module.
#pragma once
#include <nanobind/nanobind.h>

namespace dropdtw {

void define_speech(nanobind::module_& module);

}  // namespace dropdtw

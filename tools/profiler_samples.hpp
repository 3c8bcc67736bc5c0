// SPDX-License-Identifier: MIT
// profiler_samples.hpp - the samples of what lives of gperftools' library, where the program runs
// on that.
#ifndef HAK_TOOLS_PROFILER_SAMPLES_HPP
#define HAK_TOOLS_PROFILER_SAMPLES_HPP

#include <cstdio>
#include <dlfcn.h>
#include <string>

inline void write_samples_of_tcmalloc(const char *path)
{
    auto instance = reinterpret_cast<void *(*)()>(
        dlsym(RTLD_DEFAULT, "_ZN15MallocExtension8instanceEv"));
    auto sample = reinterpret_cast<void (*)(void *, std::string *)>(
        dlsym(RTLD_DEFAULT, "_ZN15MallocExtension13GetHeapSampleEPNSt7__cxx1112basic_string"
                            "IcSt11char_traitsIcESaIcEEE"));
    if (instance == nullptr || sample == nullptr)
        return;
    std::string text;
    sample(instance(), &text);
    std::FILE *file = std::fopen(path, "w");
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
}

#endif

// src/core/misspelt.cc: a setting whose name is misspelt is silently without effect; the load report says so.
#include "core/misspelt.h"

#include <algorithm>

namespace flhal {

size_t letters_apart(std::string_view a, std::string_view b) {
  // Restricted Damerau-Levenshtein distance, three rows.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::vector<std::pair<std::string, std::string>> misspelt_variables(const char* const* environment, const std::vector<std::string>& known) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* const* variable = environment; variable != nullptr && *variable != nullptr; ++variable) {
    std::string_view name = *variable;
    name = name.substr(0, name.find('='));
    if ((!name.starts_with("FLHAL_") && !name.starts_with("TORCH_FL_")) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (name.size() > 64) continue;
    const std::string* nearest = nullptr;
    size_t distance = 3;
    for (const std::string& candidate : known)
      if (size_t apart = letters_apart(name, candidate); apart < distance) {
        distance = apart;
        nearest = &candidate;
      }
    if (nearest != nullptr) found.emplace_back(name, *nearest);
  }
  return found;
}

}  // namespace flhal

// A host may call setlocale(LC_ALL, "de_DE.UTF-8"). printf then writes "0,5", which is not a number in a page, a plan or an SVG path.
#pragma once

#include <clocale>

namespace st {

/// For its lifetime this thread, and no other, formats in the C locale. For formatting whole lines; single numbers use std::to_chars and
/// std::from_chars, which ignore the locale.
class PlainLocale {
 public:
  PlainLocale();
  ~PlainLocale();
  PlainLocale(const PlainLocale&) = delete;
  PlainLocale& operator=(const PlainLocale&) = delete;

 private:
  locale_t saved_;
};

}  // namespace st

// Lists that Java fills entry by entry.
#pragma once

#include <cstdint>
#include <scaletrain/data.hpp>
#include <scaletrain/graph.hpp>
#include <string>
#include <vector>

namespace scaletrain {

/// The attributes of an op.
class Attributes {
 public:
  void add_integer(const std::string& name, int64_t value) { all_.emplace_back(name, value); }
  void add_real(const std::string& name, double value) { all_.emplace_back(name, value); }
  void add_yes(const std::string& name, bool value) { all_.emplace_back(name, value); }
  void add_word(const std::string& name, const std::string& value) { all_.emplace_back(name, value.c_str()); }
  void add_integers(const std::string& name, const std::vector<int64_t>& values) { all_.emplace_back(name, values); }
#ifndef SWIG
  const std::vector<Attribute>& all() const { return all_; }
#endif

 private:
  std::vector<Attribute> all_;
};

/// The fields of rows.
class Fields {
 public:
  void add(const std::string& name, scaletrain::DType dtype, const std::vector<int64_t>& dims) { all_.push_back({name, dtype, dims}); }
#ifndef SWIG
  const std::vector<Field>& all() const { return all_; }
#endif

 private:
  std::vector<Field> all_;
};

}  // namespace scaletrain

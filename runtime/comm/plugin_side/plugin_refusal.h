// The exception by which a plug-in says why a group could not be made or has ended.
#pragma once

#include <scaletrain/transport.h>

#include <exception>
#include <string>
#include <utility>

namespace st::plugin {

class Refusal : public std::exception {
 public:
  Refusal(st_status status, std::string reason, int rank = -1) : status_(status), rank_(rank), reason_(std::move(reason)) {}

  const char* what() const noexcept override { return reason_.c_str(); }
  st_status status() const noexcept { return status_; }
  int rank() const noexcept { return rank_; }  // the rank at fault; -1: none

 private:
  st_status status_;
  int rank_;
  std::string reason_;
};

}  // namespace st::plugin

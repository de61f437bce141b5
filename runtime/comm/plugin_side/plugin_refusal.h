// Why a group was not made, or is no more: as a plug-in tells it.
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
  int rank() const noexcept { return rank_; }  // whose fault it is; -1: nobody's

 private:
  st_status status_;
  int rank_;
  std::string reason_;
};

}  // namespace st::plugin

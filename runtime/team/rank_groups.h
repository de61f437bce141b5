// The groups that connect the ranks of a run along the axes of its mesh, and the ends that this process has in them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/mesh.h"
#include "comm/direct_exchange.h"
#include "exec/stage_links.h"

namespace st {

/// `here` counts the ranks of this process: all of them, if they are threads, or the one that a host's group has in this process. One rank
/// alone has no groups.
class RankGroups {
 public:
  /// With a host's group (which must outlive this) its ranks split it, in a collective call; without one the ranks are threads, whose
  /// groups are made here. Waits end when `is_cancelled`, asked on the rank that the caller's thread runs, is true.
  RankGroups(const Mesh& mesh, Communicator* group, Backend& backend, std::function<bool()> is_cancelled);

  const Mesh& mesh() const { return mesh_; }
  bool is_of_threads() const { return group_ == nullptr; }
  bool is_alone() const { return is_alone_; }
  /// The number of ranks of this process.
  size_t size() const { return is_of_threads() ? static_cast<size_t>(mesh_.ranks()) : 1; }
  int32_t rank_of(size_t here) const { return is_of_threads() ? static_cast<int32_t>(here) : group_->rank(); }
  MeshPosition position_of(size_t here) const { return st::position_of(mesh_, rank_of(here)); }

  /// Which way a host's group exchanges the memory of devices, and why, for people; empty: ranks are threads, or have no such memory.
  const std::string& device_exchange() const { return device_exchange_; }

  /// Whether that is through the host's memory although SCALETRAIN_DEVICE_EXCHANGE does not ask for it.
  bool is_hindered() const { return is_hindered_; }

  /// Whether a network connects the devices of a host's group.
  bool is_connected() const { return is_connected_; }

  /// All ranks, in a host's group.
  Communicator& all() { return *group_; }
  /// The rank's communicators, the same objects for this object's life. Data: null for a rank alone; tensor, stages: null with one of them.
  Communicator* data(size_t here) { return const_cast<Communicator*>(std::as_const(*this).data(here)); }
  const Communicator* data(size_t here) const;
  Communicator* tensor(size_t here) { return const_cast<Communicator*>(std::as_const(*this).tensor(here)); }
  const Communicator* tensor(size_t here) const;
  StageLinks* stages(size_t here) { return stages_.empty() ? nullptr : stages_[here].get(); }
  const StageLinks* stages(size_t here) const { return stages_.empty() ? nullptr : stages_[here].get(); }

  /// Where ranks are threads: connects the links that their plans name, and again after make_whole().
  void connect_threads(std::span<const StageLink> links);
  /// In a host's group: connects the links that a plan names. Collective call of all ranks.
  void connect(StageLinks& stages, std::span<const StageLink> links);
  /// Ends the links between stages before the executors from whose memory they may still send, after a step that failed.
  void end_links();

  bool has_ended(size_t here) const;
  /// So that nobody waits for a rank that has failed.
  void abort(size_t here, const char* why);
  /// Where ranks are threads, after an error: the next make_whole() makes new groups.
  void forget() { is_whole_ = false; }
  void make_whole();

  /// Seconds so far in collectives and, between stages, in waits for messages.
  double seconds(size_t here) const;
  int64_t sent_bytes(size_t here) const;

 private:
  CommunicatorOptions options_of(int32_t rank) const;
  CommunicatorOptions options_in_group() const;
  void split_group(Backend& backend);
  void link_threads();
  std::vector<DirectExchange> groups_along(MeshAxis axis) const;

  const Mesh mesh_;
  Communicator* const group_;  // the host's; null: ranks are threads
  const bool is_alone_ = group_ == nullptr && mesh_.ranks() == 1;
  const void* const memory_;  // of messages between stages: the device, if it has memory of its own
  const std::function<bool()> is_cancelled_;
  std::vector<DirectExchange> data_, stage_, tensor_;  // by thread; replaced after an error
  // In a host's group with stages or tensor ranks, or whose devices are connected: along each axis.
  std::unique_ptr<Communicator> along_data_, along_stages_, along_tensor_;
  std::string device_exchange_;
  bool is_connected_ = false, is_hindered_ = false;
  std::vector<std::unique_ptr<StageLinks>> stages_;  // by rank of this process; empty: one stage
  std::vector<StageLink> links_;                     // of threads
  bool is_whole_ = false;
};

}  // namespace st

#include "team/rank_groups.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "comm/local/thread_group.h"
#include "exec/device_connection.h"

namespace st {

RankGroups::RankGroups(const Mesh& mesh, Communicator* group, Backend& backend, std::function<bool()> is_cancelled)
    : mesh_(mesh), group_(group), memory_(backend.is_host_memory() ? nullptr : &backend), is_cancelled_(std::move(is_cancelled)) {
  if (!is_of_threads()) {
    split_group(backend);
    return;
  }
  check(mesh.ranks() <= kMaxThreadRanks, "trainer: recipe ranks is ", mesh.ranks(), "; at most ", kMaxThreadRanks,
        " ranks run as threads of one process; start more as processes (scaletrain launch, mpirun or Slurm) and give the trainer their "
        "communicator");
  make_whole();
}

const Communicator* RankGroups::data(size_t here) const {
  if (is_of_threads()) return is_alone() ? nullptr : &data_[here];
  return along_data_ ? along_data_.get() : group_;
}

const Communicator* RankGroups::tensor(size_t here) const { return tensor_.empty() ? along_tensor_.get() : &tensor_[here]; }

/// A thread that fails says so, and one that waits for rows may wait long.
CommunicatorOptions RankGroups::options_of(int32_t rank) const {
  CommunicatorOptions options;
  options.deadline = std::numeric_limits<double>::infinity();
  if (rank == 0) options.is_cancelled = is_cancelled_;
  return options;
}

/// A stage or tensor rank waits for the work of others: those that compute, or wait themselves, are not silent. Who does not come to a step
/// at all is found before it, by the group of all.
CommunicatorOptions RankGroups::options_in_group() const {
  CommunicatorOptions options;
  options.deadline = group_->deadline();
  options.waits_for_living = mesh_.stage > 1 || mesh_.tensor > 1;
  options.is_cancelled = is_cancelled_;
  return options;
}

void RankGroups::split_group(Backend& backend) {
  DeviceConnection connection;
  if (!backend.is_host_memory() && group_->size() > 1) connection = connection_of(*group_, backend);
  device_exchange_ = connection.text;
  is_hindered_ = connection.is_hindered;
  is_connected_ = connection.network != nullptr;
  if (mesh_.stage == 1 && mesh_.tensor == 1 && !connection.network) return;
  const int32_t rank = group_->rank();
  const auto along = [&](MeshAxis axis) { return group_->split(color_along(mesh_, axis, rank), rank, options_in_group(), true); };
  along_data_ = along(MeshAxis::data);
  if (mesh_.tensor > 1) along_tensor_ = along(MeshAxis::tensor);
  if (mesh_.stage > 1) along_stages_ = along(MeshAxis::stage);
  const auto turn = std::make_shared<DeviceTurn>();
  for (Communicator* const axis : {along_data_.get(), along_tensor_.get(), along_stages_.get()})
    if (connection.network && axis != nullptr && axis->size() > 1) connect_devices(*axis, *connection.network, turn);
  if (mesh_.stage == 1) return;
  stages_.push_back(std::make_unique<StageLinks>(*along_stages_));
}

/// By rank, its end of the group of ranks that differ from it along this axis alone.
std::vector<DirectExchange> RankGroups::groups_along(MeshAxis axis) const {
  const auto ranks = static_cast<int32_t>(mesh_.ranks());
  std::vector<std::unique_ptr<Transport>> ends(static_cast<size_t>(ranks));
  for (int32_t first = 0; first < ranks; ++first) {
    if (color_along(mesh_, axis, first) != first) continue;
    std::vector<std::unique_ptr<Transport>> group = make_thread_group(mesh_.size(axis));
    size_t next = 0;
    for (int32_t rank = first; rank < ranks; ++rank)
      if (color_along(mesh_, axis, rank) == first) ends[static_cast<size_t>(rank)] = std::move(group[next++]);
  }
  std::vector<DirectExchange> groups;
  groups.reserve(ends.size());
  for (int32_t rank = 0; rank < ranks; ++rank) groups.emplace_back(std::move(ends[static_cast<size_t>(rank)]), options_of(rank));
  return groups;
}

/// New groups are whole before they take the place of the old ones, which executors refer to.
void RankGroups::make_whole() {
  if (is_whole_ || is_alone() || !is_of_threads()) return;
  std::vector<DirectExchange> along_data = groups_along(MeshAxis::data), along_stages, along_tensor;
  if (mesh_.stage > 1) along_stages = groups_along(MeshAxis::stage);
  if (mesh_.tensor > 1) along_tensor = groups_along(MeshAxis::tensor);
  if (data_.empty()) {
    data_ = std::move(along_data);
    stage_ = std::move(along_stages);
    tensor_ = std::move(along_tensor);
    for (DirectExchange& end : stage_) stages_.push_back(std::make_unique<StageLinks>(end));
  } else {
    std::ranges::move(along_data, data_.begin());
    std::ranges::move(along_stages, stage_.begin());
    std::ranges::move(along_tensor, tensor_.begin());
    link_threads();
  }
  is_whole_ = true;
}

void RankGroups::connect_threads(std::span<const StageLink> links) {
  links_.assign(links.begin(), links.end());
  link_threads();
}

void RankGroups::link_threads() {
  if (stages_.empty()) return;
  std::vector<std::vector<std::unique_ptr<Link>>> ends(stages_.size());
  for (auto& of_rank : ends) of_rank.resize(links_.size());
  for (size_t link = 0; link < links_.size(); ++link)
    for (int32_t first = 0; first < mesh_.data * mesh_.tensor; ++first) {  // of stage 0
      std::vector<std::unique_ptr<Transport>> pair = make_thread_group(2);
      const auto hand_over = std::make_shared<HandOver>();
      for (const auto side : {HandOver::Side::sends, HandOver::Side::receives}) hand_over->set_memory(side, memory_);
      for (const int32_t stage : {links_[link].from, links_[link].to}) {
        MeshPosition at = st::position_of(mesh_, first);
        at.stage = stage;
        const int32_t rank = rank_at(mesh_, at);
        auto& end = pair[stage == links_[link].from ? 0 : 1];
        ends[static_cast<size_t>(rank)][link] =
            std::make_unique<Link>(std::make_unique<DirectExchange>(std::move(end), options_of(rank)), hand_over, options_of(rank));
      }
    }
  for (size_t rank = 0; rank < stages_.size(); ++rank) stages_[rank]->connect(std::move(ends[rank]));
}

void RankGroups::connect(StageLinks& stages, std::span<const StageLink> links) {
  std::vector<LinkEnds> ends;
  const int32_t of_stage = mesh_.data * mesh_.tensor;  // ranks of a stage, which are next to each other (base/mesh.h)
  for (const StageLink& link : links)
    for (int32_t first = 0; first < of_stage; ++first) ends.push_back({link.from * of_stage + first, link.to * of_stage + first});
  std::vector<std::unique_ptr<Link>> of_all = make_links(*group_, ends, options_in_group(), memory_), own;
  for (size_t link = 0; link < links.size(); ++link)
    own.push_back(std::move(of_all[link * static_cast<size_t>(of_stage) + static_cast<size_t>(group_->rank() % of_stage)]));
  stages.connect(std::move(own));
}

void RankGroups::end_links() {
  for (const auto& stages : stages_) stages->connect({});
}

bool RankGroups::has_ended(size_t here) const {
  return (data(here) != nullptr && data(here)->has_ended()) || (stages(here) != nullptr && stages(here)->stages().has_ended()) ||
         (tensor(here) != nullptr && tensor(here)->has_ended());
}

void RankGroups::abort(size_t here, const char* why) {
  if (Communicator* const ranks = data(here)) ranks->abort(why);
  if (StageLinks* const links = stages(here)) links->abort(why);
  if (Communicator* const ranks = tensor(here)) ranks->abort(why);
}

double RankGroups::seconds(size_t here) const {
  double sum = data(here) == nullptr ? 0 : data(here)->recorder().seconds();
  if (const Communicator* const ranks = tensor(here)) sum += ranks->recorder().seconds();
  if (const StageLinks* const links = stages(here)) sum += links->stages().recorder().seconds() + links->runs().waited();
  return sum;
}

int64_t RankGroups::sent_bytes(size_t here) const {
  int64_t sum = data(here) == nullptr ? 0 : data(here)->sent_bytes();
  if (const Communicator* const ranks = tensor(here)) sum += ranks->sent_bytes();
  if (const StageLinks* const links = stages(here)) sum += links->sent_bytes();
  return sum;
}

}  // namespace st

#include "exec/planned_message.h"

#include <functional>
#include <span>

#include "base/text.h"
#include "exec/device_operands.h"

namespace st {

PlannedMessage::PlannedMessage(const ExchangePlan& message, const Call& call, StageLinks& stages, Backend& backend, Stream& stream,
                               Stream* moving)
    : message_(message), call_(call), stages_(stages), backend_(backend), stream_(stream) {
  if (!backend.is_host_memory()) mirror_.emplace(backend, call);
  if (moving != nullptr) network_.emplace(message, stages.stages(), backend, *moving, stream);
}

PlannedMessage::~PlannedMessage() { withdraw(); }

void PlannedMessage::place() {
  is_placed_ = false;
  if (mirror_) mirror_->place();
}

void PlannedMessage::send() {
  Link& link = this->link();
  await(link);
  if (follows()) {
    sent_ = offer(link);
    return;
  }
  if (network_) {
    require_placed(call_.in[0]);
    network_->place(call_.in[0].data);
    sent_ = link.post(*network_);
    return;
  }
  if (mirror_) mirror_->download();
  sent_ = link.post(in_host(call_.in[0]), message_.elements, message_.dtype, message_.label);
}

void PlannedMessage::release() { await(link()); }

void PlannedMessage::await(Link& link) {
  if (sent_over_ != stages_.connected()) {
    sent_ = 0;
    is_offered_ = false;
    sent_over_ = stages_.connected();
  }
  link.wait(sent_);
  if (!is_offered_) return;
  stream_.wait(*offer_->is_read);
  is_offered_ = false;
}

void PlannedMessage::receive() {
  Link& link = this->link();
  if (follows()) {
    require_placed(call_.writes[0]);
    return link.take(message_.elements, message_.dtype, [this](uint64_t number) { return copy_from(number); });
  }
  if (network_) {
    require_placed(call_.writes[0]);
    network_->place(call_.writes[0].data);
    return link.receive(*network_);
  }
  link.receive(in_host(call_.writes[0]), message_.elements, message_.dtype, message_.label);
  if (mirror_) mirror_->upload();
}

// In the memory of a device that both stages share.

int64_t PlannedMessage::offer(Link& link) {
  const Operand& value = call_.in[0];
  require_placed(value);
  if (!offer_) offer_ = DeviceOffer::make(backend_, 1);
  piece_[0] = {value.data, message_.elements};
  offer_->open({&piece_, 1});
  stream_.record(*offer_->is_written);
  is_offered_ = true;
  return link.offer(offer_->number(), message_.elements, message_.dtype);
}

bool PlannedMessage::copy_from(uint64_t number) {
  const std::shared_ptr<DeviceOffer> offer = DeviceOffer::find(number);
  if (!offer || !offer->begin_reading(0, offer->is_read)) return false;
  const struct Reading {
    DeviceOffer& of;
    ~Reading() { of.end_reading(); }
  } reading{*offer};
  try {
    stream_.wait(*offer->is_written);
    stream_.copy(call_.writes[0].data, offer->part(0).front().data, message_.elements * bytes_of(message_.dtype));
  } catch (...) {
    stream_.record(*offer->is_read);  // some of it may have been given
    throw;
  }
  stream_.record(*offer->is_read);
  return true;
}

void PlannedMessage::require_placed(const Operand& operand) {
  if (is_placed_) return;
  require_on_device(backend_, operand.data, message_.elements * bytes_of(message_.dtype), text("message of ", message_.label));
  is_placed_ = true;
}

void PlannedMessage::withdraw() noexcept {
  if (offer_) offer_->withdraw();
}

std::byte* PlannedMessage::in_host(const Operand& operand) { return mirror_ ? mirror_->at(operand) : backend_.in_host(operand.data); }

}  // namespace st

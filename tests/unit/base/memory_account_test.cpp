#include "base/memory_account.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "base/memory_source.h"

namespace st {
namespace {

TEST(MemoryAccount, CountsEachRoleAndAllOfThemWithTheirPeaks) {
  MemoryAccount account;
  account.add(MemoryRole::gradients, 100);
  account.add(MemoryRole::tensors, 30);
  account.add(MemoryRole::gradients, -100);
  account.add(MemoryRole::stash, 50);
  const auto uses = account.uses();
  EXPECT_EQ(account.bytes(), 80);
  EXPECT_EQ(uses.all.now, 80);
  EXPECT_EQ(uses.all.peak, 130);
  EXPECT_EQ(uses.of[static_cast<size_t>(MemoryRole::gradients)].now, 0);
  EXPECT_EQ(uses.of[static_cast<size_t>(MemoryRole::gradients)].peak, 100);
  EXPECT_EQ(uses.of[static_cast<size_t>(MemoryRole::stash)].peak, 50);
  EXPECT_EQ(uses.of[static_cast<size_t>(MemoryRole::other)].peak, 0);
}

TEST(MemoryAccount, AResetPeakIsWhatIsThereNow) {
  MemoryAccount account;
  account.add(MemoryRole::packed, 100);
  account.add(MemoryRole::packed, -60);
  account.reset_peak();
  EXPECT_EQ(account.uses().all.peak, 40);
  EXPECT_EQ(account.uses().of[static_cast<size_t>(MemoryRole::packed)].peak, 40);
  account.add(MemoryRole::packed, 10);
  EXPECT_EQ(account.uses().all.peak, 50);
}

TEST(MemoryAccount, MemoryThatIsMovedIsCountedOnceInItsOwnRole) {
  const auto source = std::make_shared<MemorySource>();
  const auto now = [&](MemoryRole role) { return source->account().uses().of[static_cast<size_t>(role)].now; };
  {
    Memory one(100, source, MemoryRole::inputs), other(30, source, MemoryRole::packed);
    Memory moved = std::move(one);
    EXPECT_EQ(source->account().bytes(), 130);
    other = std::move(moved);
    EXPECT_EQ(now(MemoryRole::inputs), 100);
    other = Memory(7, source, MemoryRole::other);
    EXPECT_EQ(now(MemoryRole::inputs), 0);
    EXPECT_EQ(now(MemoryRole::packed), 30) << "held by what it was swapped with, until that ends";
    EXPECT_EQ(now(MemoryRole::other), 7);
  }
  EXPECT_EQ(source->account().bytes(), 0);
  EXPECT_EQ(source->account().uses().all.peak, 137);
}

TEST(MemoryAccount, WhatTheSystemRefusesIsNotCounted) {
  const auto source = std::make_shared<MemorySource>();
  EXPECT_ANY_THROW(Memory(int64_t{1} << 60, source, MemoryRole::tensors));
  EXPECT_EQ(source->account().uses().all.peak, 0);
}

TEST(MemoryAccount, EachRoleHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int32_t role = 0; role < kMemoryRoles; ++role) names.insert(name_of(static_cast<MemoryRole>(role)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kMemoryRoles));
  EXPECT_EQ(name_of(MemoryRole::other), "other");
}

}  // namespace
}  // namespace st

#include "comm/rank_environment.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "thrown_error.h"

namespace st {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<RankEnvironment> environment_of(const Variables& variables) {
  return rank_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kTorchrun = {
    {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "5"},
                            {"OMPI_COMM_WORLD_SIZE", "8"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "2735210497"}};
const Variables kPmi = {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}};
const Variables kSlurm = {{"SLURM_PROCID", "5"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NTASKS_PER_NODE", "4"},
                          {"SLURM_JOB_ID", "4711"},
                          {"SLURM_STEP_ID", "2"},
                          {"SLURM_JOB_NODELIST", "gpu[003-007,9],login"}};

Variables together(Variables one, const Variables& other) {  // `other` overrides `one`
  for (const auto& [name, value] : other) one[name] = value;
  return one;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

void expect_refused(const Variables& variables, const std::vector<std::string>& words) {
  EXPECT_TRUE(is_error(error_of([&] { environment_of(variables); }), Code::invalid_argument, words));
}

TEST(RankEnvironment, NothingSetIsNoRank) {
  EXPECT_FALSE(environment_of({}));
  EXPECT_FALSE(environment_of({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}}));
  // A shell in an allocation without a started task.
  EXPECT_FALSE(environment_of({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_NODELIST", "a,b"}}));
}

TEST(RankEnvironment, EachSourceSaysTheSame) {
  for (const auto& [source, variables] : {std::pair("torchrun", kTorchrun), {"openmpi", kOpenMpi}, {"pmi", kPmi}, {"slurm", kSlurm}}) {
    SCOPED_TRACE(source);
    const auto made = environment_of(variables);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->source, source);
    EXPECT_EQ(made->rank, 5);
    EXPECT_EQ(made->size, 8);
    EXPECT_EQ(made->local_rank, 1);
    EXPECT_EQ(made->local_size, 4);
  }
}

TEST(RankEnvironment, MasterIsTheOneNamedElseSlurmsFirstNode) {
  EXPECT_EQ(environment_of(kTorchrun)->master_host, "node7");
  EXPECT_EQ(environment_of(kTorchrun)->master_port, 29500);
  EXPECT_EQ(environment_of(kOpenMpi)->master_host, "");
  EXPECT_EQ(environment_of(kOpenMpi)->master_port, 0);
  EXPECT_EQ(environment_of(kSlurm)->master_host, "gpu003");
  EXPECT_EQ(environment_of(kSlurm)->master_port, 10'000 + 4711 + 2 * 7919 - 20'000);
  EXPECT_EQ(environment_of(together(kSlurm, {{"SLURM_STEP_NODELIST", "gpu[005,7]"}}))->master_host, "gpu005");
  const auto named = environment_of(together(kSlurm, {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "1234"}}));
  EXPECT_EQ(named->master_host, "10.0.0.1");
  EXPECT_EQ(named->master_port, 1234);
  EXPECT_EQ(environment_of(together(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}}))->master_host, "127.0.0.1");
}

TEST(RankEnvironment, LocalPartMayBeUnsaid) {
  const auto made = environment_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(made->local_rank, -1);
  EXPECT_EQ(made->local_size, -1);
  EXPECT_EQ(made->master_host, "");
}

TEST(RankEnvironment, SlurmsRanksOfANodeAreCountedNotAskedFor) {
  const auto size_on = [](const char* node, const char* tasks) {
    return environment_of(together(kSlurm, {{"SLURM_NODEID", node}, {"SLURM_STEP_TASKS_PER_NODE", tasks}}))->local_size;
  };
  EXPECT_EQ(size_on("0", "3,2(x2),5"), 3);
  EXPECT_EQ(size_on("2", "3,2(x2),5"), 2);
  EXPECT_EQ(size_on("3", "3,2(x2),5"), 5);
  EXPECT_EQ(size_on("0", "8"), 8);
  for (const char* nonsense : {"", "many", "-3", ",,", "2(x"}) EXPECT_EQ(size_on("1", nonsense), 4) << nonsense;
  // Eight tasks per node were requested, but the step has two.
  const auto small = environment_of(together(kSlurm, {{"SLURM_NTASKS_PER_NODE", "8"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}));
  EXPECT_EQ(small->local_size, 2);
}

TEST(RankEnvironment, JobIsOfOneStartOfOneLauncher) {
  EXPECT_EQ(environment_of(kTorchrun)->job, "node7:29500");
  EXPECT_EQ(environment_of(together(kTorchrun, {{"SCALETRAIN_RESTART", "3"}}))->job, "node7:29500, start 3");
  EXPECT_EQ(environment_of(together(kTorchrun, {{"SCALETRAIN_LAUNCH", "17"}}))->job, "node7:29500, launch 17");
  EXPECT_EQ(environment_of(kOpenMpi)->job, "PMIX_NAMESPACE 2735210497");
  EXPECT_EQ(environment_of(kSlurm)->job, "slurm 4711.2");
  EXPECT_EQ(environment_of(kPmi)->job, "");
  EXPECT_EQ(environment_of(together(kPmi, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}}))->job, "a:7");
}

TEST(RankEnvironment, SourcesThatAgreeAreOne) {
  EXPECT_EQ(environment_of(together(together(kSlurm, kPmi), together(kOpenMpi, kTorchrun)))->source, "torchrun");
  EXPECT_EQ(environment_of(together(kSlurm, kPmi))->source, "pmi");
  // As scripts export it for srun.
  EXPECT_EQ(environment_of(together(kSlurm, {{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}))->source, "slurm");
}

TEST(RankEnvironment, SourcesThatDisagreeAreBothShown) {
  const Variables other_rank = together(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "4"}});
  expect_refused(together(kTorchrun, other_rank), {"RANK=5 and WORLD_SIZE=8", "OMPI_COMM_WORLD_RANK=4 and OMPI_COMM_WORLD_SIZE=8",
                                                   "SCALETRAIN_RANKS_FROM", "torchrun or openmpi"});
  expect_refused(together(kPmi, together(kSlurm, {{"SLURM_NTASKS", "9"}})),
                 {"PMI_RANK=5 and PMI_SIZE=8", "SLURM_PROCID=5 and SLURM_NTASKS=9"});
  expect_refused(together(kSlurm, {{"WORLD_SIZE", "16"}}), {"WORLD_SIZE=16", "SLURM_NTASKS=8"});
}

TEST(RankEnvironment, InnerLauncherIsRight) {
  const Variables agent = together(kSlurm, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"}});
  expect_refused(together(agent, kTorchrun), {"two launchers disagree"});
  EXPECT_EQ(environment_of(together(agent, together(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}})))->source, "torchrun");

  // mpirun in a batch script, which has the job's variables and either no step or one of the special step numbers.
  const Variables script = together(without(kSlurm, "SLURM_STEP_ID"), {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}});
  EXPECT_EQ(environment_of(together(script, kOpenMpi))->source, "openmpi");
  EXPECT_EQ(environment_of(together(together(script, {{"SLURM_STEP_ID", "4294967291"}}), kOpenMpi))->source, "openmpi");
  expect_refused(together(together(script, {{"SLURM_STEP_ID", "0"}}), kOpenMpi), {"two launchers disagree"});
}

TEST(RankEnvironment, SourceCanBeNamed) {
  const Variables both = together(kTorchrun, together(kSlurm, {{"SLURM_PROCID", "6"}}));
  const auto named = [&](const std::string& source) { return environment_of(together(both, {{"SCALETRAIN_RANKS_FROM", source}})); };
  EXPECT_EQ(named("slurm")->rank, 6);
  EXPECT_EQ(named("torchrun")->rank, 5);
  EXPECT_FALSE(named("none"));
  expect_refused(together(both, {{"SCALETRAIN_RANKS_FROM", "openmpi"}}), {"OMPI_COMM_WORLD_RANK", "is set"});
  for (const char* nonsense : {"", "mpi", "torchrun "})
    expect_refused(together(both, {{"SCALETRAIN_RANKS_FROM", nonsense}}), {"SCALETRAIN_RANKS_FROM", "it must be torchrun"});
}

TEST(RankEnvironment, WhatIsMissingIsNamed) {
  expect_refused(without(kTorchrun, "RANK"), {"WORLD_SIZE=8", "RANK is not set"});
  expect_refused(without(kTorchrun, "WORLD_SIZE"), {"RANK=5", "WORLD_SIZE is not set"});
  expect_refused(without(kTorchrun, "MASTER_ADDR"), {"MASTER_ADDR is not set"});
  expect_refused(without(kTorchrun, "MASTER_PORT"), {"MASTER_PORT is not set"});
  expect_refused(without(kOpenMpi, "OMPI_COMM_WORLD_SIZE"), {"OMPI_COMM_WORLD_SIZE is not set"});
  expect_refused(without(kPmi, "PMI_RANK"), {"PMI_SIZE=8", "PMI_RANK is not set"});
  expect_refused(without(kSlurm, "SLURM_NTASKS"), {"SLURM_NTASKS is not set"});
  EXPECT_EQ(environment_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}})->size, 1);  // a single rank needs no address
}

TEST(RankEnvironment, ValuesThatMakeNoSenseAreNamed) {
  const std::vector<std::string> no_numbers = {"",  "1x", "x", " 1", "1 ", "+1", "1.0", "0x1", "-1", "1000001", "99999999999999999999999",
                                               "\n"};
  const auto refused_in = [&](const Variables& variables, const std::string& name) {
    for (const std::string& value : no_numbers)
      expect_refused(together(variables, {{name, value}}), {name, '"' + value + '"', "whole number"});
  };
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"}) refused_in(kTorchrun, name);
  for (const auto& [name, value] : kPmi) refused_in(kPmi, name);
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"})
    refused_in(kOpenMpi, name);
  for (const char* name : {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}) refused_in(kSlurm, name);
  expect_refused(together(kTorchrun, {{"WORLD_SIZE", "0"}}), {"WORLD_SIZE", "\"0\""});
  expect_refused(together(kTorchrun, {{"MASTER_PORT", "65536"}}), {"MASTER_PORT", "65535"});
  expect_refused(together(kTorchrun, {{"MASTER_ADDR", ""}}), {"MASTER_ADDR is empty"});
}

TEST(RankEnvironment, RanksAreBelowTheirNumber) {
  expect_refused(together(kTorchrun, {{"RANK", "8"}}), {"RANK=8 and WORLD_SIZE=8", "0 to 7"});
  expect_refused(together(kTorchrun, {{"LOCAL_RANK", "4"}}), {"LOCAL_RANK=4", "4"});
  expect_refused(together(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}), {"LOCAL_WORLD_SIZE=9", "WORLD_SIZE=8"});
  expect_refused(together(without(kPmi, "MPI_LOCALNRANKS"), {{"MPI_LOCALRANKID", "8"}}), {"MPI_LOCALRANKID=8", "8"});
}

TEST(RankEnvironment, FirstNodeOfSlurmsLists) {
  const auto first = [](const char* list) { return first_slurm_node("SLURM_JOB_NODELIST", list); };
  EXPECT_EQ(first("node1"), "node1");
  EXPECT_EQ(first("node1,node2"), "node1");
  EXPECT_EQ(first("node[003-007,9],other"), "node003");
  EXPECT_EQ(first("node[9,11-12]-ib"), "node9-ib");
  EXPECT_EQ(first("rack[0-1]node[02-03],x"), "rack0node02");
  EXPECT_EQ(first("a.b.example,c"), "a.b.example");
  for (const char* nonsense : {"", ",a", "node[", "node[]", "node[3", "node[-3]", "node[a-b]", "node]", "a b", "node[[1]]", "\n", "../x"})
    expect_refused(together(kSlurm, {{"SLURM_JOB_NODELIST", nonsense}}), {"SLURM_JOB_NODELIST", nonsense, "node[003-007,9]"});
}

}  // namespace
}  // namespace st

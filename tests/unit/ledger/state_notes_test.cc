// Small texts beside a ledger, as files and as objects.
#include "ledger/state_notes.h"

#include <gmock/gmock.h>

#include "ledger/chain_note.h"
#include "ledger/stored_notes.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_store.h"
#include "tests/support/memory_write_store.h"

namespace parallelrun::ledger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

void ExpectNotes(StateNotes& notes) {
  EXPECT_EQ(*notes.Read("pod.json", 100), std::nullopt);
  ASSERT_TRUE(notes.Write("pod.json", "first").ok());
  ASSERT_TRUE(notes.Write("pod.json", "second").ok());
  EXPECT_EQ(**notes.Read("pod.json", 100), "second");
  EXPECT_EQ(**notes.Read("pod.json", 3), "sec");
  ASSERT_TRUE(notes.Write("uploads/000001.json", "one").ok());
  EXPECT_EQ(**notes.Read("uploads/000001.json", 100), "one");
  EXPECT_TRUE(notes.Remove("uploads/000007.json").ok()) << "it is not there";
  EXPECT_TRUE(notes.Remove("uploads/000001.json").ok());
  EXPECT_EQ(*notes.Read("uploads/000001.json", 100), std::nullopt);
}

TEST(StateNotesTest, AFolderHasThemAsFiles) {
  FaultFiles files;
  ASSERT_TRUE(files.MakeFolders("/state").ok());
  const std::unique_ptr<StateNotes> notes = MakeFolderNotes(files, "/state");
  EXPECT_EQ(notes->Location("pod.json"), "/state/pod.json");
  EXPECT_THAT(*notes->List("uploads"), IsEmpty());
  ExpectNotes(*notes);
  EXPECT_EQ(files.Contents("/state/pod.json"), "second");
  ASSERT_TRUE(notes->Write("uploads/000002.json", "two").ok());
  EXPECT_THAT(*notes->List("uploads"), ElementsAre("000002.json"));
  files.Crash(CrashMode::kLoseAll);
  EXPECT_EQ(**notes->Read("uploads/000002.json", 100), "two") << "it was durable";
}

class StoredNotesTest : public ::testing::Test {
 protected:
  StoredNotesTest() {
    auto store = std::make_unique<MemoryWriteStore>();
    store_ = store.get();
    notes_ = MakeStoredNotes(std::move(store), listed_.Open("memory://state"));
  }

  MemoryObjects listed_;  // what a listing tells
  MemoryWriteStore* store_ = nullptr;
  std::unique_ptr<StateNotes> notes_;
};

TEST_F(StoredNotesTest, AStoreHasThemAsObjects) {
  EXPECT_EQ(notes_->Location("pod.json"), "s3://bucket/pod.json");
  ExpectNotes(*notes_);
  EXPECT_EQ(store_->Find("pod.json")->bytes, "second");
}

TEST_F(StoredNotesTest, OnlyThoseOfAFolderAreListed) {
  listed_.Put("memory://state/chain/00000001", "x");
  EXPECT_THAT(*notes_->List("uploads"), IsEmpty());
  for (const char* name :
       {"pod.json", "uploads/000001.json", "uploads/000002.json", "uploadsx/000003.json"}) {
    listed_.Put("memory://state/" + std::string(name), "x");
  }
  EXPECT_THAT(*notes_->List("uploads"), UnorderedElementsAre("000001.json", "000002.json"));
}

// By a request whose answer was lost, or another coordinator.
TEST_F(StoredNotesTest, TheLastOneThatIsWrittenStays) {
  store_->Write("pod.json", "of another");
  ASSERT_TRUE(notes_->Write("pod.json", "own").ok());
  EXPECT_EQ(store_->Find("pod.json")->bytes, "own");
  bool lost = false;
  store_->SetFaults([&](size_t, const std::string& what) {
    if (what != "put" || lost) return MemoryWriteStore::Fault::kNone;
    lost = true;
    return MemoryWriteStore::Fault::kLostAnswer;
  });
  ASSERT_TRUE(notes_->Write("other.json", "own").ok());
  EXPECT_EQ(store_->Find("other.json")->bytes, "own");
}

TEST_F(StoredNotesTest, AStoreThatIsAwayIsNoMissingNote) {
  store_->SetFaults([](size_t, const std::string&) { return MemoryWriteStore::Fault::kRefused; });
  EXPECT_EQ(notes_->Read("pod.json", 100).error().code, Code::kUnavailable);
  EXPECT_EQ(notes_->Write("pod.json", "x").error().code, Code::kUnavailable);
}

TEST(ChainNoteTest, IsReadAsItWasWritten) {
  FaultFiles files;
  ASSERT_TRUE(files.MakeFolders("/state").ok());
  EXPECT_EQ(*ReadChainNote(files, "/state"), std::nullopt);
  const ChainNote note{"s3://results/.parallelrun/photos-1", 7, 0x00abcdef01234567};
  ASSERT_TRUE(WriteChainNote(files, "/state", note).ok());
  EXPECT_EQ(*ReadChainNote(files, "/state"), note);
  EXPECT_THAT(files.Contents("/state/chain.json"), HasSubstr("\"run\":\"00abcdef01234567\""));
  for (const char* damaged : {"", "{}", "x", R"({"chain":"s3://a","epoch":1})"}) {
    files.Put("/state/chain.json", damaged);
    EXPECT_EQ(ReadChainNote(files, "/state").error().code, Code::kCorrupt) << damaged;
  }
}

}  // namespace
}  // namespace parallelrun::ledger

#include "store/azure_blob/azure_blob_store.h"

#include <utility>

#include "store/azure_blob/listing.h"
#include "store/objects/object.h"
#include "store/objects/object_version.h"

namespace parallelrun::store::azure_blob {
namespace {

class AzureBlobStore final : public Store {
 public:
  explicit AzureBlobStore(std::unique_ptr<Container> container)
      : container_(std::move(container)) {}

  Result<std::unique_ptr<store::Listing>> List(Wanted wanted, const std::string& after) override {
    return std::unique_ptr<store::Listing>(
        std::make_unique<Listing>(*container_, std::move(wanted), after));
  }
  Result<bool> IsThere() override { return HoldsAny(*container_); }
  Result<std::optional<Found>> Stat(const std::string& name) override {
    return container_->Stat(container_->address().KeyOf(name));
  }
  Result<std::unique_ptr<Object>> Open(const std::string& name) override {
    return OpenObject(*container_, container_->address().KeyOf(name));
  }
  std::unique_ptr<Object> OpenUnseen(const std::string& name, const Version& version) override {
    return MakeUnseen(*container_, container_->address().KeyOf(name), version);
  }
  AnswerCounts CountAnswers() const override { return container_->CountAnswers(); }
  std::string Location(std::string_view name) const override {
    return container_->address().Url(name);
  }
  Result<std::string> RealRoot() override { return Location(""); }
  std::optional<Found> Pinned(const Pin& pin, const std::optional<Found>& now) const override {
    return PinnedObject(pin, now);
  }
  std::string Difference(const Version& was, const Version& is) const override {
    return DifferenceOfObjects(was, is);
  }
  Version AsBefore(const Version& version) const override { return WithoutSize(version); }

 private:
  const std::unique_ptr<Container> container_;
};

}  // namespace

Result<std::unique_ptr<Store>> MakeStore(const StoreOptions& options, const Surroundings& around,
                                         std::shared_ptr<const Clock> clock) {
  Result<Address> address = ParseAddress(options.url);
  if (!address.ok()) return address.error();
  Result<Source> source = SourceOf(around, *address);
  if (!source.ok()) return source.error().With(address->Url(""));
  ContainerOptions container;
  container.address = std::move(*address);
  container.endpoint = options.endpoint;
  container.page = options.page;
  container.limits = options.limits;
  container.first_byte = options.first_byte;
  container.clock = std::move(clock);
  container.stop = options.stop;
  container.tally = options.tally;
  Result<std::unique_ptr<Container>> made =
      Container::Make(std::move(container), std::move(*source));
  if (!made.ok()) return made.error();
  return std::unique_ptr<Store>(std::make_unique<AzureBlobStore>(std::move(*made)));
}

Result<std::unique_ptr<Store>> OpenStore(const Wished& wished, std::stop_token stop) {
  StoreOptions options;
  options.url = wished.url;
  options.endpoint = wished.endpoint;
  options.stop = std::move(stop);
  options.tally = wished.tally;
  return MakeStore(options, ReadSurroundings(), std::make_shared<SystemClock>());
}

}  // namespace parallelrun::store::azure_blob

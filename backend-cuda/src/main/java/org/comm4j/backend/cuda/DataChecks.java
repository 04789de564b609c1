package org.comm4j.backend.cuda;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;

/// Whether data of the program's is memory that a rank's device reaches, and its peers do: else a
/// kernel would fault. Asks the driver about what is not ours. Thread-safe.
final class DataChecks {
  private final CudaRank rank;
  private final CudaDevice device;
  private final List<DeviceData> opened = new CopyOnWriteArrayList<>(); // of other devices too

  DataChecks(CudaRank rank) {
    this.rank = rank;
    this.device = rank.device();
  }

  /// Memory of a device that this rank's device reaches, until the data's scope ends.
  void opened(DeviceData data) {
    opened.removeIf(each -> !each.scope().isAlive());
    opened.add(data);
  }

  /// Checks that data is memory of the rank's device, or what others have lent it.
  ///
  /// @param what it is, for the message
  /// @throws IllegalArgumentException if it is not
  void check(String what, DeviceData data) {
    int mine = device.ordinal();
    if (data.device() != mine) {
      throw new IllegalArgumentException(
          "%s: %s (expected: data on device %d, which is this rank's; COMM_CUDA_DEVICE chooses it)"
              .formatted(what, data, mine));
    }
    if (!data.scope().isAlive()) {
      throw new IllegalArgumentException(
          "%s: %s of a buffer, region or registration that is closed (expected: one that is open)"
              .formatted(what, data));
    }
    if (data.bytes() == 0) {
      return;
    }
    if (data.address() % alignment(data.type()) != 0) {
      throw new IllegalArgumentException(
          "%s (expected: a multiple of %d, as devices need for this type)"
              .formatted(at(what, data), alignment(data.type())));
    }
    CudaDevice.Place place =
        find(data.address())
            .orElseThrow(() ->
                new IllegalArgumentException(
                    at(what, data)
                        + " (expected: memory of the device; the driver knows none there: it was freed, or is the host's)"));
    if (place.device().isEmpty() || (place.device().get() != mine && !isOpened(data))) {
      throw new IllegalArgumentException(
          "%s (expected: memory of device %d; it is %s)"
              .formatted(
                  at(what, data),
                  mine,
                  place.device().map(d -> "device " + d + "'s").orElse("the host's")));
    }
    if (place.isApart()) {
      throw new IllegalArgumentException(
          "%s (expected: memory of device %d's primary context; it is of one that cuCtxCreate made); allocate it in the context of cuDevicePrimaryCtxRetain"
              .formatted(at(what, data), mine));
    }
    long behind = place.base() + place.bytes() - data.address();
    if (data.bytes() > behind) {
      throw new IllegalArgumentException(
          "%s, %d bytes (expected: at most %d, where its allocation ends)"
              .formatted(at(what, data), data.bytes(), behind));
    }
  }

  /// Names data, for messages.
  private static String at(String what, DeviceData data) {
    return "%s: %s at 0x%x".formatted(what, data, data.address());
  }

  /// Checks that the devices of some ranks reach data that [#check] has passed: in one process they
  /// may read it where it is, and reach this rank's device then and each other's, but not any that
  /// has lent it.
  ///
  /// @param members ranks of the session
  /// @throws IllegalArgumentException if they don't
  void checkReached(String what, DeviceData input, List<Integer> members) {
    if (!isOpened(input)) {
      return; // it is this device's
    }
    int owner =
        Optional.of(input)
            .filter(data -> data.bytes() > 0)
            .flatMap(data -> find(data.address()))
            .flatMap(CudaDevice.Place::device)
            .orElse(device.ordinal());
    if (owner == device.ordinal() || !rank.areOfThisProcess(members)) {
      return;
    }
    if (!rank.have(members, device.uuid(owner))) {
      throw new IllegalArgumentException(
          "%s: input %s is lent by device %d (expected: memory of a device of this communicator's ranks, which all of them reach); copy it to this rank's"
              .formatted(what, input, owner));
    }
  }

  /// Checks that other devices of this process reach data that [#check] has passed: else a kernel
  /// there would fault.
  ///
  /// @throws IllegalArgumentException if they don't
  void checkPlain(String what, DeviceData data) {
    boolean isOurs = data.bytes() == 0 || rank.gpu().has(data.address());
    if (!isOurs && !device.isPlain(data.address())) {
      throw new IllegalArgumentException(
          "%s: %s at 0x%x is of a pool (cuMemAllocAsync), or was mapped (cuMemMap) (expected: memory of cuMemAlloc or of allocate, which the other devices of this process reach too); copy it there"
              .formatted(what, data, data.address()));
    }
  }

  /// {@return where the allocation begins that data is in which [#check] has passed}
  long allocation(DeviceData data) {
    return find(data.address())
        .orElseThrow(() ->
            new IllegalArgumentException(
                "%s at 0x%x was freed meanwhile".formatted(data, data.address())))
        .base();
  }

  private boolean isOpened(DeviceData data) {
    return opened.stream()
        .anyMatch(each ->
            each.scope().isAlive()
                && each.address() <= data.address()
                && data.address() + data.bytes() <= each.address() + each.bytes());
  }

  private Optional<CudaDevice.Place> find(long address) {
    return rank.gpu().find(address);
  }

  /// What a device loads at once of an element.
  private static int alignment(DataType type) {
    int part = type.kind() == DataType.Kind.COMPLEX ? type.bytes() / 2 : type.bytes();
    return Math.min(Long.BYTES, part);
  }
}

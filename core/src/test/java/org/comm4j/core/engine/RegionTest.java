package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.SharedRegion.Phase;
import org.junit.jupiter.api.Test;

class RegionTest {
  private static final int[] WRITTEN = {1, 2, 3};

  /// The close waits for the call that runs the operator.
  @Test
  void close_operatorLooksAtTheRegion_waitsForNobody() {
    var operator =
        new Object() {
          Runnable looks = () -> {};
        };
    var region = region(() -> elsewhere(operator.looks));
    operator.looks =
        () -> {
          assertThat(region.phase()).isEqualTo(Phase.FENCED);
          assertThat(region.data().count()).isEqualTo(3);
          assertThatThrownBy(() -> region.read(0, CommData.of(new int[3])))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("read", "before another thread closes it");
        };
    region.close();
    assertThat(region.phase()).isEqualTo(Phase.CLOSED);
  }

  @Test
  void close_isRead_isRefusedAndTheRegionStays() {
    var reading = new CompletableFuture<Void>();
    var read = new CompletableFuture<Void>();
    var region = new SlowRegion(reading, read);
    region.fence();
    CompletableFuture<Void> reader =
        CompletableFuture.runAsync(() -> region.read(0, CommData.of(new int[3])));
    reading.join();
    assertThatThrownBy(region::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("another thread reads the region");
    read.complete(null);
    reader.join();
    int[] target = new int[3];
    region.read(0, CommData.of(target));
    assertThat(target).isEqualTo(WRITTEN);
    region.close();
    assertThat(region.phase()).isEqualTo(Phase.CLOSED);
  }

  /// Other ranks may be late, and the close of a communicator waits for none either.
  @Test
  void close_anotherThreadFences_isRefusedAndTheRegionStays() {
    var fencing = new CompletableFuture<Void>();
    var othersCame = new CompletableFuture<Void>();
    var region =
        new HostRegion(
            CommData.of(WRITTEN),
            true,
            new Region.Owner() {
              @Override
              public void fence() {
                fencing.complete(null);
                othersCame.join();
              }

              @Override
              public void close() {}
            });
    CompletableFuture<Void> fence = CompletableFuture.runAsync(region::fence);
    fencing.join();
    othersCame.completeOnTimeout(null, 10, TimeUnit.SECONDS); // if the close waited

    assertThatThrownBy(region::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("another thread fences the region");

    othersCame.complete(null);
    fence.join();
    assertThat(region.phase()).isEqualTo(Phase.FENCED);
    region.close();
  }

  private static HostRegion region(Runnable close) {
    var region = new HostRegion(CommData.of(WRITTEN), true, owner(close));
    region.fence();
    return region;
  }

  private static Region.Owner owner(Runnable close) {
    return new Region.Owner() {
      @Override
      public void fence() {}

      @Override
      public void close() {
        close.run();
      }
    };
  }

  private static void elsewhere(Runnable action) {
    CompletableFuture.runAsync(action).orTimeout(20, TimeUnit.SECONDS).join();
  }

  /// One whose first reader takes its time.
  private static final class SlowRegion extends Region<HostData> {
    private final CompletableFuture<Void> reading;
    private final CompletableFuture<Void> read;
    private final HostData whole = CommData.of(WRITTEN);

    SlowRegion(CompletableFuture<Void> reading, CompletableFuture<Void> read) {
      super(DataType.INT32, WRITTEN.length, true, owner(() -> {}));
      this.reading = reading;
      this.read = read;
    }

    @Override
    protected HostData whole(boolean isReadOnly) {
      return whole;
    }

    @Override
    protected void copyIn(HostData source, HostData part) {
      throw new AssertionError("nobody writes");
    }

    @Override
    protected void copyOut(HostData part, HostData target) {
      reading.complete(null);
      read.join();
      target.segment().copyFrom(part.segment());
    }

    @Override
    protected HostData part(HostData data, long from, long count) {
      return data.slice(from, count);
    }
  }
}

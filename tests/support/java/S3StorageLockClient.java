package org.apache.hudi.aws.transaction.lock;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Properties;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/** Stands in for the class of this name in hudi-aws: the requests to S3 alone, all decisions are Hudi's. */
public class S3StorageLockClient implements StorageLockClient {
  private final HttpClient client = HttpClient.newHttpClient();
  private final URI file;

  public S3StorageLockClient(String owner, String lockFile, Properties options) {
    file = URI.create(options.getProperty("test.endpoint") + "/" + lockFile.replaceFirst("^s3a?://", ""));
  }

  @Override
  public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
    HttpResponse<byte[]> answer = send(request().GET().build());
    return switch (answer.statusCode()) {
      case 200 -> Pair.of(LockGetResult.SUCCESS, Option.of(
          StorageLockFile.createFromStream(new ByteArrayInputStream(answer.body()), version(answer))));
      case 404 -> Pair.of(LockGetResult.NOT_EXISTS, Option.empty());
      default -> Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
    };
  }

  @Override
  public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(
      StorageLockData data, Option<StorageLockFile> previous) {
    HttpRequest.Builder put = request()
        .PUT(HttpRequest.BodyPublishers.ofByteArray(StorageLockFile.toByteArray(data)));
    if (previous.isPresent()) {
      put.header("If-Match", previous.get().getVersionId());
    } else {
      put.header("If-None-Match", "*");
    }
    HttpResponse<byte[]> answer = send(put.build());
    return switch (answer.statusCode()) {
      case 200 -> Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(data, version(answer))));
      case 412 -> Pair.of(LockUpsertResult.ACQUIRED_BY_OTHERS, Option.empty());
      case 429 -> Pair.of(LockUpsertResult.THROTTLED, Option.empty());
      default -> Pair.of(LockUpsertResult.UNKNOWN_ERROR, Option.empty());
    };
  }

  @Override
  public Option<String> readObject(String path, boolean checkExists) {
    return Option.empty();
  }

  @Override
  public boolean writeObject(String path, String content) {
    return false;
  }

  @Override
  public void close() {}

  /** Returns a request that moto, which looks at no signature, takes for one of the owner of the bucket. */
  private HttpRequest.Builder request() {
    return HttpRequest.newBuilder(file)
        .header("Authorization", "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request");
  }

  private HttpResponse<byte[]> send(HttpRequest request) {
    try {
      return client.send(request, BodyHandlers.ofByteArray());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  private static String version(HttpResponse<byte[]> answer) {
    return answer.headers().firstValue("ETag").orElseThrow();
  }
}

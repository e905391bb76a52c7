import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.amazonaws.services.dynamodbv2.model.LockNotGrantedException;
import java.net.URI;
import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/**
 * Takes a lock by AWS's lock client, called as Hudi's DynamoDBBasedLockProvider calls it: arguments are the address
 * of DynamoDB, the lock table, the key and the lease in milliseconds, commands come line by line.
 */
public class LockClientContender {
  public static void main(String[] arguments) throws Exception {
    DynamoDbClient service = DynamoDbClient.builder()
        .endpointOverride(URI.create(arguments[0]))
        .region(Region.US_EAST_1)
        .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("key", "secret")))
        .build();
    long leaseMs = Long.parseLong(arguments[3]);
    AmazonDynamoDBLockClient client = new AmazonDynamoDBLockClient(
        AmazonDynamoDBLockClientOptions.builder(service, arguments[1])
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .withLeaseDuration(leaseMs)
            .withHeartbeatPeriod(leaseMs / 3)
            .withCreateHeartbeatBackgroundThread(true)
            .build());
    LockItem lock = null;
    System.out.println("ready");
    Scanner commands = new Scanner(System.in);
    while (commands.hasNext()) {
      switch (commands.next()) {
        case "acquire" -> {
          try {
            lock = client.acquireLock(AcquireLockOptions.builder(arguments[2])
                .withAdditionalTimeToWaitForLock(commands.nextLong())
                .withTimeUnit(TimeUnit.MILLISECONDS)
                .build());
            System.out.println(!lock.isExpired());
          } catch (LockNotGrantedException late) {
            System.out.println(false);
          }
        }
        case "release" -> {
          client.releaseLock(lock);
          System.out.println("released");
        }
        default -> throw new IllegalArgumentException();
      }
    }
    client.close();
  }
}

# One static binary, no shell, user 65532. The root may be read-only:
#
#   docker build -t ringi .
#   docker run --read-only --cap-drop=all --security-opt=no-new-privileges --network=host \
#     -v ringi-data:/var/lib/ringi -v ringi-key:/var/lib/ringi-key \
#     -v ./ringi.yaml:/etc/ringi/ringi.yaml:ro ringi
#
# Data and key are two volumes: a copy of one is not a copy of both.

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
ARG VERSION=container
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
	-ldflags="-s -w -buildid= -X main.released=$VERSION" -o /out/ringi ./cmd/ringi
# New volumes take owner and mode from these.
RUN mkdir -p -m 0700 /out/data /out/key

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ringi /ringi
COPY --from=build --chown=65532:65532 /out/data /var/lib/ringi
COPY --from=build --chown=65532:65532 /out/key /var/lib/ringi-key
ENV RINGI_DATA=/var/lib/ringi RINGI_KEY_FILE=/var/lib/ringi-key/ringi.key
USER 65532:65532
VOLUME ["/var/lib/ringi", "/var/lib/ringi-key"]
EXPOSE 7464
ENTRYPOINT ["/ringi"]
CMD ["serve"]

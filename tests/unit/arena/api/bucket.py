"""A bucket as an S3-compatible store has it: objects by key, for whoever has a signed link."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

_KEY = "/{bucket}/{key:path}"


def bucket_app(objects: dict[str, bytes]) -> FastAPI:
    """PUT, GET and DELETE over these objects, each object whole.

    It holds links to be signed, and a PUT to the length and the type that its link signs; it
    does not compute signatures, which test_objects.py holds to AWS's own example.
    """
    app = FastAPI()

    def signed(request: Request, *headers: str) -> bool:
        names = request.query_params.get("X-Amz-SignedHeaders", "").split(";")
        return "X-Amz-Signature" in request.query_params and {"host", *headers} == set(names)

    @app.put(_KEY)
    async def put(key: str, request: Request) -> Response:
        if not signed(request, "content-length", "content-type"):
            return Response(status_code=403)
        objects[key] = await request.body()
        return Response()

    @app.get(_KEY)
    async def get(key: str, request: Request) -> Response:
        if not signed(request):
            return Response(status_code=403)
        if key not in objects:
            return Response(b"<Error><Code>NoSuchKey</Code></Error>", 404)
        return Response(objects[key])

    @app.delete(_KEY)
    async def delete(key: str, request: Request) -> Response:
        if not signed(request):
            return Response(status_code=403)
        objects.pop(key, None)
        return Response(status_code=204)

    return app
